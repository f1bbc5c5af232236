"""The types of a contract's columns, in Spark."""

from __future__ import annotations

from pyspark.sql import types as T  # noqa: N812 - its usual name

from sealbook.model.column_types import ArrayType, ColumnType, DecimalType, MapType, StructType

_SPARK = {
    ColumnType.STRING: T.StringType(),
    ColumnType.BOOLEAN: T.BooleanType(),
    ColumnType.INT: T.IntegerType(),
    ColumnType.BIGINT: T.LongType(),
    ColumnType.FLOAT: T.FloatType(),
    ColumnType.DOUBLE: T.DoubleType(),
    ColumnType.DATE: T.DateType(),
    ColumnType.TIMESTAMP: T.TimestampType(),
    ColumnType.JSON: T.StringType(),
}


def spark_type(column_type: ColumnType) -> T.DataType:
    """Return the type that rows have in Spark; JSON is its text there."""
    match column_type:
        case DecimalType():
            return T.DecimalType(column_type.precision, column_type.scale)
        case ArrayType():
            return T.ArrayType(spark_type(column_type.element))
        case MapType():
            return T.MapType(T.StringType(), spark_type(column_type.value))
        case StructType():
            return T.StructType(
                [T.StructField(name, spark_type(each)) for name, each in column_type.members.items()]
            )
    return _SPARK[column_type]
